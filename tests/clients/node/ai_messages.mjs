// The AI SDK with its Anthropic provider, whose schemas check every message and event.
import { createAnthropic } from '@ai-sdk/anthropic';
import { generateText } from 'ai';
import { common, talk } from './ai_steps.mjs';
import { failure, step } from './steps.mjs';

const { MODEL, OPENAI_API_KEY: apiKey, OPENAI_BASE_URL: baseURL } = process.env;
const anthropic = createAnthropic({ baseURL, apiKey });
const given = { ...common, model: anthropic(MODEL), maxOutputTokens: 1000 };
const options = (more) => ({ providerOptions: { anthropic: more } });

await talk(given, {
  thinking: options({ thinking: { type: 'enabled', budgetTokens: 1024 } }),
  object: options({ structuredOutputMode: 'outputFormat' }),
  whole: true,
});
await step('error', () => failure(() => generateText({ ...given, model: anthropic('nope'), prompt: 'Hi' })));
