// Mastra with a model by URL, over Chat Completions.
import { Agent } from '@mastra/core/agent';
import { createTool } from '@mastra/core/tools';
import { z } from 'zod';
import { forecast, step } from './steps.mjs';

const model = (name) => ({ id: `verbatim/${name}`, url: process.env.OPENAI_BASE_URL, apiKey: process.env.OPENAI_API_KEY });
const agent = (more = {}) =>
  new Agent({ id: 'helper', name: 'Helper', instructions: 'Be kind.', model: model(process.env.MODEL), maxRetries: 0, ...more });
const asked = [];
const weather = createTool({
  id: 'get_weather',
  description: 'The weather',
  inputSchema: z.object({ city: z.string() }),
  execute: async (input) => (asked.push(input.city), forecast(input)),
});

await step('text', async () => (await agent().generate('Hi')).text);
await step('stream', async () => {
  const result = await agent().stream('Think');
  return [await result.text, await result.reasoningText];
});
await step('tools', async () => {
  const text = (await agent({ tools: { get_weather: weather } }).generate('One?')).text;
  return [asked.splice(0), text];
});
await step('parallel', async () => {
  const result = await agent({ tools: { get_weather: weather } }).stream('Two?');
  const text = await result.text;
  return [asked.splice(0), text];
});
await step('object', async () => {
  const schema = z.object({ name: z.string(), age: z.number() });
  return (await agent().generate('Who?', { structuredOutput: { schema } })).object;
});
await step('turns', async () => {
  const one = { role: 'user', content: 'One' };
  const first = (await agent().generate([one])).text;
  const messages = [one, { role: 'assistant', content: first }, { role: 'user', content: 'Two' }];
  return [first, (await agent().generate(messages)).text];
});
