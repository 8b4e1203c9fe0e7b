// The agents package for Node with tools that the server runs.
import { Agent, codeInterpreterTool, fileSearchTool, run, setDefaultOpenAIClient, webSearchTool } from '@openai/agents';
import OpenAI, { toFile } from 'openai';
import { step } from './steps.mjs';

const client = new OpenAI({ maxRetries: 0 });
setDefaultOpenAIClient(client);
const agent = (...tools) => new Agent({ name: 'Helper', instructions: 'Be kind.', model: process.env.MODEL, tools });
const names = (result) => result.newItems.filter((item) => item.type === 'tool_call_item').map((item) => item.rawItem.name);

async function fileTool() {
  const file = await client.files.create({ file: await toFile(Buffer.from('Arrakis is about the scarcity of water.'), 'example.txt'), purpose: 'assistants' });
  const store = await client.vectorStores.create({ name: 'example' });
  await client.vectorStores.files.createAndPoll(store.id, { file_id: file.id });
  return fileSearchTool(store.id, { maxNumResults: 3, includeSearchResults: true });
}

await step('code', async () => {
  const result = await run(agent(codeInterpreterTool()), 'Write a report.');
  return [result.finalOutput, names(result)];
});
await step('files', async () => {
  const result = await run(agent(await fileTool()), 'Arrakis?');
  return [result.finalOutput, names(result)];
});
await step('web', async () => {
  const result = await run(agent(webSearchTool()), 'Tides?', { stream: true });
  for await (const event of result) void event;
  await result.completed;
  return [result.finalOutput, names(result)];
});
await step('turns', async () => {
  const everyone = agent(codeInterpreterTool(), await fileTool(), webSearchTool());
  const first = await run(everyone, 'All');
  const second = await run(everyone, [...first.history, { role: 'user', content: 'And now?' }]);
  return [first.finalOutput, second.finalOutput];
});
