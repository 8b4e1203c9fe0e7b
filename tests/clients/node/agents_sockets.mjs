// The agents package for Node with its WebSocket transport.
import { Agent, tool, withResponsesWebSocketSession } from '@openai/agents';
import WebSocket from 'ws';
import { z } from 'zod';
import { forecast, step } from './steps.mjs';

// Node has one of its own from version 22 on.
globalThis.WebSocket ??= WebSocket;
const agent = (more = {}) => new Agent({ name: 'Helper', instructions: 'Be kind.', model: process.env.MODEL, ...more });
const asked = [];
const weather = tool({
  name: 'get_weather',
  description: 'The weather',
  parameters: z.object({ city: z.string() }),
  execute: (given) => (asked.push(given.city), forecast(given)),
});

await withResponsesWebSocketSession(
  async ({ run }) => {
    await step('text', async () => (await run(agent(), 'Hi')).finalOutput);
    await step('stream', async () => {
      const result = await run(agent(), 'Think', { stream: true });
      for await (const event of result) void event;
      await result.completed;
      return [result.finalOutput, result.newItems.map((item) => item.type)];
    });
    await step('tools', async () => [asked, (await run(agent({ tools: [weather] }), 'One?')).finalOutput]);
    await step('parallel', async () => [asked.splice(0) && asked, (await run(agent({ tools: [weather] }), 'Two?')).finalOutput]);
    await step('turns', async () => {
      const first = await run(agent(), 'One');
      return [first.finalOutput, (await run(agent(), 'Two', { previousResponseId: first.lastResponseId })).finalOutput];
    });
  },
  { providerOptions: { apiKey: process.env.OPENAI_API_KEY, baseURL: process.env.OPENAI_BASE_URL } },
);
