// The agents package for Node over Chat Completions: answers of the model are sent back as the package keeps them.
import { Agent, run, setDefaultOpenAIClient, setOpenAIAPI, tool } from '@openai/agents';
import OpenAI from 'openai';
import { z } from 'zod';
import { failure, forecast, step } from './steps.mjs';

setDefaultOpenAIClient(new OpenAI({ maxRetries: 0 }));
setOpenAIAPI('chat_completions');
const agent = (more = {}) => new Agent({ name: 'Helper', instructions: 'Be kind.', model: process.env.MODEL, ...more });
const asked = [];
const weather = tool({
  name: 'get_weather',
  description: 'The weather',
  parameters: z.object({ city: z.string() }),
  execute: (given) => (asked.push(given.city), forecast(given)),
});

async function streamed(made, input) {
  const result = await run(made, input, { stream: true });
  for await (const event of result) void event;
  await result.completed;
  return result;
}

await step('text', async () => (await run(agent(), 'Hi')).finalOutput);
await step('stream', async () => (await streamed(agent(), 'Think')).finalOutput);
await step('tools', async () => [asked, (await run(agent({ tools: [weather] }), 'One?')).finalOutput]);
await step('parallel', async () => [asked.splice(0) && asked, (await streamed(agent({ tools: [weather] }), 'Two?')).finalOutput]);
await step('object', async () => {
  const outputType = z.object({ name: z.string(), age: z.number() });
  return (await run(agent({ outputType }), 'Who?')).finalOutput;
});
await step('turns', async () => {
  const first = await run(agent(), 'One');
  return [first.finalOutput, (await streamed(agent(), [...first.history, { role: 'user', content: 'Two' }])).finalOutput];
});
await step('error', () => failure(() => run(agent({ model: 'nope' }), 'Hi')));
