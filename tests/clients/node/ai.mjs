// The AI SDK with either of its providers, which read the same answers by different schemas.
import { createOpenResponses } from '@ai-sdk/open-responses';
import { createOpenAI } from '@ai-sdk/openai';
import { Output, generateText, isStepCount, streamText, tool } from 'ai';
import OpenAI from 'openai';
import { z } from 'zod';
import { failure, forecast, step } from './steps.mjs';

const { MODEL, OPENAI_API_KEY: apiKey, OPENAI_BASE_URL: baseURL, SERVER_URL } = process.env;
const openai = createOpenAI({ baseURL, apiKey });
const open = (root) => createOpenResponses({ name: 'local', url: `${root}/responses`, apiKey });
const provider = MODEL === 'ai-openai' ? openai.responses : open(baseURL);
const asked = [];
const weather = tool({
  description: 'The weather',
  inputSchema: z.object({ city: z.string() }),
  execute: async (given) => (asked.push(given.city), forecast(given)),
});
const common = { model: provider(MODEL), maxRetries: 0, stopWhen: isStepCount(3) };
const person = Output.object({ schema: z.object({ name: z.string(), age: z.number() }) });
const options = (given) => ({ providerOptions: { openai: given } });

async function streamed(more) {
  const errors = [];
  const result = streamText({ ...common, ...more, onError: ({ error }) => errors.push(String(error)) });
  await result.consumeStream();
  if (errors.length) throw new Error(errors.join());
  return result;
}

await step('text', async () => (await generateText({ ...common, prompt: 'Hi' })).text);
await step('stream', async () => {
  const result = await streamed({ prompt: 'Think' });
  return [await result.text, (await result.reasoningText) ?? null];
});
await step('tools', async () => [asked, (await generateText({ ...common, prompt: 'One?', tools: { get_weather: weather } })).text]);
await step('parallel', async () => {
  asked.length = 0;
  return [asked, await (await streamed({ prompt: 'Two?', tools: { get_weather: weather } })).text];
});
await step('object', async () => (await streamed({ prompt: 'Who?', output: person })).output);
await step('turns', async () => {
  const first = await generateText({ ...common, prompt: 'One' });
  const messages = [{ role: 'user', content: 'One' }, ...first.response.messages, { role: 'user', content: 'Two' }];
  return [first.text, (await generateText({ ...common, messages })).text];
});
if (MODEL === 'ai-openai') {
  await step('conversation', async () => {
    const { id } = await new OpenAI().conversations.create();
    const said = [];
    for (const prompt of ['Three', 'Four']) said.push((await generateText({ ...common, prompt, ...options({ conversation: id }) })).text);
    return said;
  });
  await step('shell', async () => {
    const execute = async ({ action }) => ({ output: action.commands.map((stdout) => ({ stdout, stderr: '', outcome: { type: 'exit', exitCode: 0 } })) });
    return (await generateText({ ...common, prompt: 'Where?', tools: { shell: openai.tools.shell({ execute }) } })).text;
  });
  await step('compaction', async () => {
    const asked = options({ compactionTrigger: true, promptCacheOptions: { mode: 'implicit', ttl: '30m' } });
    return (await generateText({ ...common, prompt: 'Hello', ...asked })).content.map((part) => part.kind ?? part.type);
  });
} else {
  await step('open', async () => (await generateText({ ...common, model: open(`${SERVER_URL}/openresponses/v1`)(MODEL), prompt: 'Hi' })).text);
}
await step('error', () => failure(() => generateText({ ...common, model: provider('nope'), prompt: 'Hi' })));
