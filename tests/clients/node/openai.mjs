// The openai package for Node: every endpoint of responses and conversations, streams with its accumulator.
import OpenAI from 'openai';
import { zodResponsesFunction, zodTextFormat } from 'openai/helpers/zod';
import { z } from 'zod';
import { failure, forecast, step } from './steps.mjs';

const model = process.env.MODEL;
const client = new OpenAI({ maxRetries: 0 });
const city = z.object({ city: z.string() });
const tools = [zodResponsesFunction({ name: 'get_weather', description: 'The weather', parameters: city })];
const kinds = (response) => response.output.map((item) => item.type);

async function accumulated(body) {
  const stream = client.responses.stream({ model, ...body });
  const streamed = [];
  for await (const event of stream) if (event.type.endsWith('_text.delta')) streamed.push(event.delta);
  return [streamed.join(''), await stream.finalResponse()];
}

async function loop(send, input) {
  const first = await send({ input, tools });
  const calls = first.output.filter((item) => item.type === 'function_call');
  const asked = calls.map((call) => JSON.parse(call.arguments));
  const outputs = calls.map((call, at) => ({ type: 'function_call_output', call_id: call.call_id, output: forecast(asked[at]) }));
  const second = await send({ input: outputs, previous_response_id: first.id, tools });
  return [asked.map((one) => one.city), second.output_text];
}

await step('text', async () => (await client.responses.create({ model, input: 'Hi' })).output_text);
await step('stream', async () => {
  const [streamed, final] = await accumulated({ input: 'Think' });
  return [streamed, kinds(final)];
});
await step('tools', () => loop((body) => client.responses.create({ model, ...body }), 'One?'));
await step('parallel', () => loop(async (body) => (await accumulated(body))[1], 'Two?'));
await step('object', async () => {
  const format = zodTextFormat(z.object({ name: z.string(), age: z.number() }), 'person');
  return (await client.responses.parse({ model, input: 'Who?', text: { format } })).output_parsed;
});
await step('turns', async () => {
  const first = await client.responses.create({ model, input: 'One' });
  const second = await client.responses.create({ model, input: 'Two', previous_response_id: first.id });
  const told = [];
  for await (const item of client.responses.inputItems.list(second.id, { limit: 1, order: 'asc' })) told.push(item.type);
  await client.responses.delete(first.id);
  return [first.output_text, second.output_text, told, await failure(() => client.responses.retrieve(first.id))];
});
await step('conversation', async () => {
  const { id } = await client.conversations.create({ metadata: { topic: 'numbers' } });
  const said = [];
  for (const input of ['Three', 'Four']) {
    said.push((await client.responses.create({ model, input, conversation: id })).output_text);
  }
  const added = await client.conversations.items.create(id, { items: [{ role: 'user', content: 'Bye' }] });
  await client.conversations.items.retrieve(added.data[0].id, { conversation_id: id });
  await client.conversations.items.delete(added.data[0].id, { conversation_id: id });
  const items = [];
  for await (const item of client.conversations.items.list(id, { limit: 2, order: 'asc' })) items.push(item.role ?? item.type);
  const { metadata } = await client.conversations.update(id, { metadata: { topic: 'more' } });
  return [said, items, metadata, (await client.conversations.delete(id)).deleted];
});
await step('background', async () => {
  let response = await client.responses.create({ model, input: 'Five', background: true });
  const began = response.status;
  while (['queued', 'in_progress'].includes(response.status)) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    response = await client.responses.retrieve(response.id);
  }
  const resumed = client.responses.stream({ response_id: response.id, starting_after: 2 });
  return [began, response.status, (await resumed.finalResponse()).output_text];
});
await step('compaction', async () => {
  const compacted = await client.responses.compact({ model, input: [{ role: 'user', content: 'I am Ada' }] });
  const { output_text } = await client.responses.create({ model, input: [...compacted.output, { role: 'user', content: 'Who?' }] });
  return [kinds(compacted), output_text];
});
await step('count', async () => (await client.responses.inputTokens.count({ model, input: 'Hi', tools })).object);
await step('error', () => failure(() => client.responses.create({ model: 'nope', input: 'Hi' })));
