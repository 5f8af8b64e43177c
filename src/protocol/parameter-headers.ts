import { SwitchboardError } from '../errors.ts';
import { inWords, isObject } from '../json.ts';
import { headerProblem, headerValueOf, isTooLongForHeader, textOfHeader } from './header-values.ts';

/** An argument of a tool that travels as a header too: its schema says so with `x-mcp-header`. */
export interface ParameterHeader {
  /** Where it stands in the arguments. */
  path: readonly string[];
  /** In lower case, with the prefix of all of them. */
  header: string;
  type: string;
}

const ANNOTATION = 'x-mcp-header';
const PREFIX = 'mcp-param-';
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const types: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean']);

/** Below these an annotation is not allowed: the argument that it is about could not be told. */
const unreachable = [
  ...['items', 'prefixItems', 'contains', 'additionalProperties', 'unevaluatedProperties'],
  ...['unevaluatedItems', 'propertyNames', 'oneOf', 'anyOf', 'allOf', 'not', 'if', 'then', 'else'],
];
const unreachableMaps = ['patternProperties', 'dependentSchemas', '$defs', 'definitions'];

/** The arguments of a tool that travel as headers, or what is wrong with what its schema says of them. */
export function parameterHeaders(inputSchema: unknown): ParameterHeader[] | { problem: string } {
  // Nearly no tool has any, and walking over all schemas of all tools takes time.
  if (!JSON.stringify(inputSchema ?? null).includes(ANNOTATION)) return [];
  const found: ParameterHeader[] = [];
  const problem = collect(inputSchema, [], true, found);
  if (problem !== undefined) return { problem };
  const names = new Set(found.map(({ header }) => header));
  return names.size === found.length ? found : { problem: 'two arguments have the same header' };
}

function collect(
  schema: unknown,
  path: readonly string[],
  isReachable: boolean,
  found: ParameterHeader[],
): string | undefined {
  if (!isObject(schema)) return undefined;
  if (ANNOTATION in schema) {
    const { [ANNOTATION]: name, type } = schema;
    const where = path.join('.') || 'the schema itself';
    if (!isReachable || path.length === 0) return `${where} cannot have a header`;
    if (typeof name !== 'string' || !token.test(name)) return `the header of ${where} is not a valid name`;
    if (!types.has(type))
      return `${where} has a header and is of type ${inWords(type)}, not a string, an integer or a boolean`;
    found.push({ path, header: PREFIX + name.toLowerCase(), type: String(type) });
  }
  const below: [path: readonly string[], schema: unknown, isReachable: boolean][] = [];
  for (const [key, child] of entries(schema.properties)) below.push([[...path, key], child, isReachable]);
  for (const keyword of unreachable) {
    const child = schema[keyword];
    const children: unknown[] = Array.isArray(child) ? child : [child];
    for (const one of children) below.push([[...path, keyword], one, false]);
  }
  for (const keyword of unreachableMaps) {
    for (const [, child] of entries(schema[keyword])) below.push([[...path, keyword], child, false]);
  }
  for (const step of below) {
    const [where, child, isBelowReachable] = step;
    const problem = collect(child, where, isBelowReachable, found);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** The lines of a request's head that repeat arguments. Refuses arguments that are too long for that. */
export function parameterHeaderLines(declared: readonly ParameterHeader[], args: unknown): string {
  let lines = '';
  for (const { path, header } of declared) {
    const text = textOf(valueAt(args, path));
    if (text !== undefined && isTooLongForHeader(text))
      throw new SwitchboardError(
        'invalid_params',
        `The argument ${path.join('.')} is too long: the tool wants it repeated in the header ${header}.`,
      );
    if (text !== undefined) lines += `${header}: ${headerValueOf(text)}\r\n`;
  }
  return lines;
}

/** What is wrong with the headers that repeat arguments; undefined where nothing is. `mayLack`: none of them has to be there. */
export function parameterHeaderProblem(
  declared: readonly ParameterHeader[],
  args: unknown,
  headers: Readonly<Record<string, string | string[] | undefined>>,
  mayLack = false,
): string | undefined {
  for (const { path, header, type } of declared) {
    const value = valueAt(args, path);
    const text = textOf(value);
    if (text === undefined) continue;
    const sent = headers[header];
    if (sent === undefined && mayLack) continue;
    if (sent === undefined)
      return `the argument ${path.join('.')} has to be repeated in the header ${header}`;
    const said = textOfHeader(String(sent));
    if (said === undefined) return `the header ${header} ${headerProblem(String(sent))}`;
    if (said !== text && !isSameNumber(type, value, said))
      return `the header ${header} differs from the argument ${path.join('.')}`;
  }
  return undefined;
}

function isSameNumber(type: string, value: unknown, said: string): boolean {
  return type === 'integer' && typeof value === 'number' && isDecimal(said) && Number(said) === value;
}

function isDecimal(text: string): boolean {
  return /^-?\d+(\.\d+)?$/.test(text);
}

/** Undefined where a header cannot repeat it. */
function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (typeof value === 'boolean') return String(value);
  if (typeof value !== 'number' || !Number.isFinite(value)) return undefined;
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? undefined : String(value);
}

function valueAt(root: unknown, path: readonly string[]): unknown {
  let value = root;
  for (const key of path) value = isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  return value;
}

function entries(value: unknown): [string, unknown][] {
  return isObject(value) ? Object.entries(value) : [];
}
