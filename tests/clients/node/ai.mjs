// The AI SDK with either of its providers, which read the same answers by different schemas.
import { createOpenResponses } from '@ai-sdk/open-responses';
import { createOpenAI } from '@ai-sdk/openai';
import { generateText } from 'ai';
import OpenAI from 'openai';
import { common, talk } from './ai_steps.mjs';
import { failure, step } from './steps.mjs';

const { MODEL, OPENAI_API_KEY: apiKey, OPENAI_BASE_URL: baseURL, SERVER_URL } = process.env;
const openai = createOpenAI({ baseURL, apiKey });
const open = (root) => createOpenResponses({ name: 'local', url: `${root}/responses`, apiKey });
const provider = MODEL === 'ai-openai' ? openai.responses : open(baseURL);
const given = { ...common, model: provider(MODEL) };
const options = (given) => ({ providerOptions: { openai: given } });

await talk(given);
if (MODEL === 'ai-openai') {
  await step('conversation', async () => {
    const { id } = await new OpenAI().conversations.create();
    const said = [];
    for (const prompt of ['Three', 'Four']) said.push((await generateText({ ...given, prompt, ...options({ conversation: id }) })).text);
    return said;
  });
  await step('shell', async () => {
    const execute = async ({ action }) => ({ output: action.commands.map((stdout) => ({ stdout, stderr: '', outcome: { type: 'exit', exitCode: 0 } })) });
    return (await generateText({ ...given, prompt: 'Where?', tools: { shell: openai.tools.shell({ execute }) } })).text;
  });
  await step('compaction', async () => {
    const asked = options({ compactionTrigger: true, promptCacheOptions: { mode: 'implicit', ttl: '30m' } });
    return (await generateText({ ...given, prompt: 'Hello', ...asked })).content.map((part) => part.kind ?? part.type);
  });
} else {
  await step('open', async () => (await generateText({ ...common, model: open(`${SERVER_URL}/openresponses/v1`)(MODEL), prompt: 'Hi' })).text);
}
await step('error', () => failure(() => generateText({ ...common, model: provider('nope'), prompt: 'Hi' })));
