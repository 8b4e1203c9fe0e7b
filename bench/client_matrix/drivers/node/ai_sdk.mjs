// Driver of the AI SDK: does one task, given as JSON, and prints a line of JSON.
import { readFileSync } from 'node:fs';
import { createOpenAI } from '@ai-sdk/openai';
import { Output, generateText, isStepCount, streamText, tool } from 'ai';
import { z } from 'zod';

const { MODEL, OPENAI_API_KEY: apiKey, OPENAI_BASE_URL: baseURL } = process.env;
const { way, prompts, forecasts, image } = JSON.parse(process.argv[2]);
const [prompt] = prompts;
const common = { model: createOpenAI({ baseURL, apiKey }).responses(MODEL), maxRetries: 0, stopWhen: isStepCount(5) };
const get_weather = tool({
  description: 'Get the current weather in a city.',
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => forecasts[city] ?? 'unknown city',
});
const person = Output.object({ schema: z.object({ name: z.string(), age: z.number().int() }) });

const ways = {
  single: async () => ({ texts: [(await generateText({ ...common, prompt })).text] }),
  memory: async () => {
    const texts = [];
    const messages = [];
    for (const content of prompts) {
      messages.push({ role: 'user', content });
      const result = await generateText({ ...common, messages });
      messages.push(...result.response.messages);
      texts.push(result.text);
    }
    return { texts };
  },
  tools: async () => ({ texts: [(await generateText({ ...common, prompt, tools: { get_weather } })).text] }),
  schema: async () => ({ texts: [JSON.stringify((await generateText({ ...common, prompt, output: person })).output)] }),
  stream: async () => {
    const errors = [];
    const result = streamText({ ...common, prompt, onError: ({ error }) => errors.push(error) });
    const deltas = [];
    for await (const delta of result.textStream) deltas.push(delta);
    if (errors.length) throw errors[0];
    return { texts: [await result.text], deltas };
  },
  image: async () => {
    const content = [{ type: 'text', text: prompt }, { type: 'file', mediaType: 'image/png', data: readFileSync(image) }];
    return { texts: [(await generateText({ ...common, messages: [{ role: 'user', content }] })).text] };
  },
};

const began = performance.now();
let outcome;
try {
  outcome = await ways[way]();
} catch (error) {
  outcome = { error: `${error?.constructor?.name}: ${error?.message}` };
}
console.log(JSON.stringify({ ...outcome, seconds: (performance.now() - began) / 1000 }));
