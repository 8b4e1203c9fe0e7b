// The openai package for Node over one WebSocket: lanes with their accumulator, a tool loop, a fork, warm-up, steering.
import OpenAI from 'openai';
import { ResponsesWebSocketAccumulator } from 'openai/lib/responses/responses-websocket-accumulator';
import { ResponsesWebSocketSession } from 'openai/lib/responses/responses-websocket-session';
import { ResponsesWS } from 'openai/resources/responses/ws';
import { forecast, step } from './steps.mjs';

const model = process.env.MODEL;
const socket = new ResponsesWS(new OpenAI({ maxRetries: 0 }));
socket.on('error', () => {});
await new Promise((resolve) => socket.socket.on('open', resolve));
const session = new ResponsesWebSocketSession(socket, { maxLanes: 16, maxBufferedEvents: 10_000, maxBufferedBytes: 10_000_000 });
const main = session.lane();
const [a, b, c] = ['a', 'b', 'c'].map((name) => session.lane(name));
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false };
const tools = [{ type: 'function', name: 'get_weather', strict: true, parameters }];
const ends = ['response.completed', 'response.incomplete', 'response.failed'];

async function made(lane, body) {
  lane.create({ model, store: false, ...body });
  return lane.finalResponse();
}

// What the accumulator has made of the events before the last, beside what the last says.
async function accumulated(lane, body) {
  const accumulator = new ResponsesWebSocketAccumulator();
  lane.create({ model, store: false, ...body });
  for (;;) {
    const event = await lane.receive();
    const before = accumulator.current;
    accumulator.add(event);
    if (ends.includes(event.type)) return [before.snapshot.output, event.response];
  }
}

await step('text', async () => (await made(main, { input: 'Hi' })).output_text);
await step('lanes', async () => {
  const responses = await Promise.all([main, a, b].map((lane) => made(lane, { input: 'Hi' })));
  return responses.map((response) => response.output_text);
});
await step('accumulator', async () => {
  const [before, { output }] = await accumulated(a, { input: 'Think' });
  return [JSON.stringify(before) === JSON.stringify(output), output.map((item) => item.type)];
});
await step('tools', async () => {
  const first = await made(a, { input: 'One?', tools });
  const call = first.output.at(-1);
  const input = [{ type: 'function_call_output', call_id: call.call_id, output: forecast(JSON.parse(call.arguments)) }];
  return (await made(a, { input, previous_response_id: first.id, tools })).output_text;
});
await step('fork', async () => {
  const root = await made(a, { input: 'Root' });
  const on = { input: 'On', previous_response_id: root.id };
  b.create({ model, store: false, ...on });
  // From here on the lane that it came from may go on.
  while ((await b.receive()).type !== 'response.in_progress');
  const forks = [await made(a, on), await b.finalResponse()];
  return forks.map((response) => [response.output_text, response.previous_response_id === root.id]);
});
await step('warm', async () => {
  const warm = await made(main, { input: 'Look', generate: false });
  return [warm.status, warm.output.length, (await made(main, { input: 'Go', previous_response_id: warm.id })).output_text];
});
await step('steer', async () => {
  c.create({ model, input: 'Long' });
  let event, uid;
  do {
    event = await c.receive();
    uid ??= event.response?.id;
  } while (event.type !== 'response.output_text.delta');
  socket.send({ type: 'response.steer', previous_response_id: uid, input: 'Short' });
  const kinds = [];
  while (!ends.includes(event.type)) {
    event = await c.receive();
    if (event.type.startsWith('response.steer')) kinds.push(event.type);
  }
  const second = await c.finalResponse();
  return [kinds, event.response.incomplete_details.reason, second.output_text, second.previous_response_id === uid];
});
await step('error', async () => {
  main.create({ model, input: 'Hi', previous_response_id: 'resp_unknown' });
  const { status, error } = await main.receive();
  return [status, error.code, (await made(main, { input: 'Hi' })).output_text];
});
session.close();
socket.close();
