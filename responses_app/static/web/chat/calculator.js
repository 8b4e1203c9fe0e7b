// Calculator without eval: numbers, + - * / % ^ and brackets, parsed by recursive descent.

const TOKEN = /\s*(?:(\d+\.?\d*(?:e[+-]?\d+)?|\.\d+)|(\*\*|[-+*/%^()×÷−]))/giy;
const SYNONYMS = { "×": "*", "÷": "/", "−": "-", "**": "^" };
const LEVELS = [
  { "+": (a, b) => a + b, "-": (a, b) => a - b },
  { "*": (a, b) => a * b, "/": (a, b) => a / b, "%": (a, b) => a % b },
];
const MAX_CHARS = 1000;

export function calculate(text) {
  if (text.length > MAX_CHARS) throw new Error("the expression is too long");
  const tokens = tokensOf(text.trimEnd());
  const value = level(tokens, 0);
  if (tokens.length) throw new Error(`unexpected ${tokens[0]}`);
  if (!Number.isFinite(value)) throw new Error("the result is not a number");
  // Hide binary rounding, as in 0.1 + 0.2.
  return Number(value.toPrecision(15));
}

function tokensOf(text) {
  const tokens = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const at = TOKEN.lastIndex;
    const match = TOKEN.exec(text);
    if (!match) throw new Error(`unexpected ${text.slice(at).trim()[0]}`);
    tokens.push(match[1] !== undefined ? Number(match[1]) : (SYNONYMS[match[2]] ?? match[2]));
  }
  return tokens;
}

function level(tokens, depth) {
  if (depth === LEVELS.length) return sign(tokens);
  let value = level(tokens, depth + 1);
  for (let operation; (operation = LEVELS[depth][tokens[0]]); ) {
    tokens.shift();
    value = operation(value, level(tokens, depth + 1));
  }
  return value;
}

function sign(tokens) {
  if (tokens[0] === "-" || tokens[0] === "+") return (tokens.shift() === "-" ? -1 : 1) * sign(tokens);
  const base = atom(tokens);
  if (tokens[0] !== "^") return base;
  tokens.shift();
  return base ** sign(tokens);
}

function atom(tokens) {
  const token = tokens.shift();
  if (typeof token === "number") return token;
  if (token !== "(") throw new Error(token === undefined ? "the expression ends too early" : `unexpected ${token}`);
  const value = level(tokens, 0);
  if (tokens.shift() !== ")") throw new Error("a bracket is not closed");
  return value;
}
