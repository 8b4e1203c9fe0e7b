// The AI SDK with tools that the server runs: its schemas check every item and event.
import { createOpenAI } from '@ai-sdk/openai';
import { generateText, isStepCount, streamText } from 'ai';
import OpenAI, { toFile } from 'openai';
import { step } from './steps.mjs';

const { MODEL, OPENAI_API_KEY: apiKey, OPENAI_BASE_URL: baseURL } = process.env;
const openai = createOpenAI({ baseURL, apiKey });
const client = new OpenAI({ maxRetries: 0 });
const common = { model: openai.responses(MODEL), maxRetries: 0, stopWhen: isStepCount(3) };
const options = (given) => ({ providerOptions: { openai: given } });
const code = { code_interpreter: openai.tools.codeInterpreter({}) };
const web = { web_search: openai.tools.webSearch({ searchContextSize: 'low', userLocation: { type: 'approximate', country: 'US' } }) };

async function files() {
  const store = await client.vectorStores.create({ name: 'example' });
  const text = Buffer.from('Arrakis, the desert planet, was inspired by the scarcity of water.');
  await client.vectorStores.files.uploadAndPoll(store.id, await toFile(text, 'example.txt'));
  return { file_search: openai.tools.fileSearch({ vectorStoreIds: [store.id], maxNumResults: 3 }) };
}

async function streamed(more) {
  const errors = [];
  const result = streamText({ ...common, ...more, onError: ({ error }) => errors.push(String(error)) });
  await result.consumeStream();
  if (errors.length) throw new Error(errors.join());
  return { text: await result.text, content: await result.content, sources: await result.sources, response: await result.response };
}

function shown({ text, content, sources }) {
  const results = content.filter((part) => part.type === 'tool-result').map((part) => part.toolName);
  return [text, results, sources.map((source) => source.filename ?? source.url)];
}

for (const [name, run] of [['generate', generateText], ['stream', streamed]]) {
  const ask = async (tools, more = {}) => run({ ...common, prompt: 'Hi', tools, ...more });
  await step(`${name} figure`, async () => {
    const { content } = await ask(code);
    const { output } = content.find((part) => part.type === 'tool-result');
    return output.outputs.map((one) => one.type);
  });
  await step(`${name} code`, async () => shown(await ask(code)));
  await step(`${name} files`, async () => {
    const result = await ask(await files(), options({ include: ['file_search_call.results'] }));
    const { output } = result.content.find((part) => part.type === 'tool-result');
    return [...shown(result), output.results.map((one) => one.filename)];
  });
  await step(`${name} web`, async () => shown(await ask(web)));
}
for (const [name, run] of [['generate', generateText], ['stream', streamed]]) {
  for (const store of [true, false]) {
    await step(`${name} turns, store ${store}`, async () => {
      const tools = { ...code, ...(await files()), ...web };
      const more = options({ store, ...(store ? {} : { include: ['reasoning.encrypted_content'] }) });
      const first = await run({ ...common, prompt: 'All', tools, ...more });
      const { messages } = first.response;
      const again = [{ role: 'user', content: 'All' }, ...messages, { role: 'user', content: 'And now?' }];
      return [first.text, (await run({ ...common, messages: again, tools, ...more })).text];
    });
  }
}
for (const [name, run] of [['generate', generateText], ['stream', streamed]]) {
  await step(`${name} failures`, async () => {
    const tools = { ...code, ...(await files()), ...web };
    const first = await run({ ...common, prompt: 'Fail', tools });
    const messages = [{ role: 'user', content: 'Fail' }, ...first.response.messages, { role: 'user', content: 'And now?' }];
    return [first.text, (await run({ ...common, messages, tools })).text];
  });
}
