// The agents package for Node: loops, memory in a conversation, a shell that the client runs.
import { Agent, OpenAIConversationsSession, run, setDefaultOpenAIClient, shellTool, tool } from '@openai/agents';
import OpenAI from 'openai';
import { z } from 'zod';
import { failure, forecast, step } from './steps.mjs';

const client = new OpenAI({ maxRetries: 0 });
setDefaultOpenAIClient(client);
const agent = (more = {}) => new Agent({ name: 'Helper', instructions: 'Be kind.', model: process.env.MODEL, ...more });
const asked = [];
const weather = tool({
  name: 'get_weather',
  description: 'The weather',
  parameters: z.object({ city: z.string() }),
  execute: (given) => (asked.push(given.city), forecast(given)),
});
const shell = shellTool({
  shell: { run: async ({ commands }) => ({ output: commands.map((stdout) => ({ stdout, stderr: '', outcome: { type: 'exit', exitCode: 0 } })) }) },
});

async function streamed(made, input, more = {}) {
  const result = await run(made, input, { ...more, stream: true });
  for await (const event of result) void event;
  await result.completed;
  return result;
}

await step('text', async () => (await run(agent(), 'Hi')).finalOutput);
await step('stream', async () => {
  const result = await streamed(agent(), 'Think');
  return [result.finalOutput, result.newItems.map((item) => item.type)];
});
await step('tools', async () => [asked, (await run(agent({ tools: [weather] }), 'One?')).finalOutput]);
await step('parallel', async () => [asked.splice(0) && asked, (await streamed(agent({ tools: [weather] }), 'Two?')).finalOutput]);
await step('object', async () => {
  const outputType = z.object({ name: z.string(), age: z.number() });
  return (await run(agent({ outputType }), 'Who?')).finalOutput;
});
await step('turns', async () => {
  const first = await run(agent(), 'One');
  return [first.finalOutput, (await run(agent(), 'Two', { previousResponseId: first.lastResponseId })).finalOutput];
});
await step('conversation', async () => {
  const session = new OpenAIConversationsSession({ client });
  const said = [(await run(agent(), 'Three', { session })).finalOutput, (await streamed(agent(), 'Four', { session })).finalOutput];
  const kinds = (await session.getItems()).map((item) => item.type);
  await session.clearSession();
  return [said, kinds];
});
await step('shell', async () => {
  const result = await run(agent({ tools: [shell] }), 'Where?');
  return [result.finalOutput, result.newItems.map((item) => item.rawItem.type)];
});
await step('error', () => failure(() => run(agent({ model: 'nope' }), 'Hi')));
