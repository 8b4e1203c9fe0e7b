// Demo tools, which run in the browser: definitions and implementations.
const object = (properties, required) => ({ type: "object", properties, required, additionalProperties: false });

const TOOLS = {
  clock: {
    name: "get_current_time",
    description: "Get the current time",
    parameters: object({ timezone: { type: "string", description: "IANA timezone" } }, ["timezone"]),
    run: ({ timezone }) => new Intl.DateTimeFormat("en-GB", { timeZone: timezone || undefined, dateStyle: "full", timeStyle: "long" }).format(new Date()),
  },
  dice: {
    name: "roll_dice",
    description: "Roll a die",
    parameters: object({ sides: { type: "integer", description: "How many sides it has" } }, ["sides"]),
    run: ({ sides }) => ({ rolled: 1 + Math.floor(Math.random() * positive(sides)) }),
  },
  calculator: {
    name: "calculator",
    description: "Evaluate a math expression",
    parameters: object({ expression: { type: "string" } }, ["expression"]),
    run: async ({ expression }) => ({ result: (await import("./calculator.js")).calculate(String(expression)) }),
  },
  weather: {
    name: "get_weather",
    description: "Get the current weather for a location.",
    parameters: object({ location: { type: "string", description: "City and country" } }, ["location"]),
    // Sample data, the same for the same location.
    run: ({ location }) => {
      const sum = [...String(location)].reduce((total, char) => total + char.codePointAt(0), 0);
      return { location, temperature: sum % 30, condition: ["sunny", "cloudy", "rainy", "windy"][sum % 4], source: "sample" };
    },
  },
};

// The name of a demo tool in the form for a tool of a request, by name and description.
export function demoName(tool) {
  return Object.keys(TOOLS).find((name) => TOOLS[name].name === tool.name && TOOLS[name].description === tool.description);
}

export const declared = (names) =>
  names.filter((name) => TOOLS[name]).map((name) => {
    const { run, ...tool } = TOOLS[name];
    return { type: "function", ...tool };
  });

// The output of a call as text, or null for any other tool. An error is an output too, so that the model can try again.
export async function output(call) {
  const tool = Object.values(TOOLS).find((candidate) => candidate.name === call.name);
  if (!tool) return null;
  try {
    const result = await tool.run(JSON.parse(call.arguments || "{}"));
    return typeof result === "string" ? result : JSON.stringify(result);
  } catch (error) {
    return JSON.stringify({ error: error.message });
  }
}

function positive(number) {
  if (!Number.isInteger(number) || number < 1) throw new Error("sides must be a positive whole number");
  return number;
}
