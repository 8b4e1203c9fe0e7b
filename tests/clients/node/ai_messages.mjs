// The AI SDK with its Anthropic provider, whose schemas check every message and event.
import { createAnthropic } from '@ai-sdk/anthropic';
import { Output, generateText, isStepCount, streamText, tool } from 'ai';
import { z } from 'zod';
import { failure, forecast, step } from './steps.mjs';

const { MODEL, OPENAI_API_KEY: apiKey, OPENAI_BASE_URL: baseURL } = process.env;
const anthropic = createAnthropic({ baseURL, apiKey });
const asked = [];
const weather = tool({
  description: 'The weather',
  inputSchema: z.object({ city: z.string() }),
  execute: async (given) => (asked.push(given.city), forecast(given)),
});
const common = { model: anthropic(MODEL), maxRetries: 0, stopWhen: isStepCount(3), maxOutputTokens: 1000 };
const person = Output.object({ schema: z.object({ name: z.string(), age: z.number() }) });
const native = { providerOptions: { anthropic: { structuredOutputMode: 'outputFormat' } } };

async function streamed(more) {
  const errors = [];
  const result = streamText({ ...common, ...more, onError: ({ error }) => errors.push(String(error)) });
  await result.consumeStream();
  if (errors.length) throw new Error(errors.join());
  return result;
}

await step('text', async () => (await generateText({ ...common, prompt: 'Hi' })).text);
await step('stream', async () => {
  const thinking = { providerOptions: { anthropic: { thinking: { type: 'enabled', budgetTokens: 1024 } } } };
  const result = await streamed({ prompt: 'Think', ...thinking });
  return [await result.text, await result.reasoningText];
});
await step('tools', async () => [asked, (await generateText({ ...common, prompt: 'One?', tools: { get_weather: weather } })).text]);
await step('parallel', async () => {
  asked.length = 0;
  return [asked, await (await streamed({ prompt: 'Two?', tools: { get_weather: weather } })).text];
});
await step('object', async () => (await generateText({ ...common, prompt: 'Who?', output: person, ...native })).output);
await step('turns', async () => {
  const first = await generateText({ ...common, prompt: 'One' });
  const messages = [{ role: 'user', content: 'One' }, ...first.response.messages, { role: 'user', content: 'Two' }];
  return [first.text, (await generateText({ ...common, messages })).text];
});
await step('error', () => failure(() => generateText({ ...common, model: anthropic('nope'), prompt: 'Hi' })));
