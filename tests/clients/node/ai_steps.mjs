// The steps that a model of any provider of the AI SDK goes through, in the order of its tape.
import { Output, generateText, isStepCount, streamText, tool } from 'ai';
import { z } from 'zod';
import { forecast, step } from './steps.mjs';

const asked = [];
const weather = tool({
  description: 'The weather',
  inputSchema: z.object({ city: z.string() }),
  execute: async (given) => (asked.push(given.city), forecast(given)),
});
export const common = { maxRetries: 0, stopWhen: isStepCount(3) };
const person = Output.object({ schema: z.object({ name: z.string(), age: z.number() }) });

async function streamed(given) {
  const errors = [];
  const result = streamText({ ...given, onError: ({ error }) => errors.push(String(error)) });
  await result.consumeStream();
  if (errors.length) throw new Error(errors.join());
  return result;
}

// `thinking` are the options of a request for reasoning, `object` those of an object; with `whole` the object is not streamed.
export async function talk(given, { thinking = {}, object = {}, whole = false } = {}) {
  await step('text', async () => (await generateText({ ...given, prompt: 'Hi' })).text);
  await step('stream', async () => {
    const result = await streamed({ ...given, prompt: 'Think', ...thinking });
    return [await result.text, (await result.reasoningText) ?? null];
  });
  await step('tools', async () => [asked, (await generateText({ ...given, prompt: 'One?', tools: { get_weather: weather } })).text]);
  await step('parallel', async () => {
    asked.length = 0;
    return [asked, await (await streamed({ ...given, prompt: 'Two?', tools: { get_weather: weather } })).text];
  });
  await step('object', async () => (await (whole ? generateText : streamed)({ ...given, prompt: 'Who?', output: person, ...object })).output);
  await step('turns', async () => {
    const first = await generateText({ ...given, prompt: 'One' });
    const messages = [{ role: 'user', content: 'One' }, ...first.response.messages, { role: 'user', content: 'Two' }];
    return [first.text, (await generateText({ ...given, messages })).text];
  });
}
