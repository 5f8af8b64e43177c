import { SwitchboardError } from '../errors.ts';
import { inWords, isObject } from '../json.ts';
import { headerProblem, headerValueOf, isTooLongForHeader, textOfHeader } from './header-values.ts';

/** An argument of a tool that is also sent as a header, because its schema has `x-mcp-header`. */
export interface ParameterHeader {
  /** Its keys in the arguments. */
  path: readonly string[];
  /** In lower case, with the common prefix. */
  header: string;
  type: string;
}

const ANNOTATION = 'x-mcp-header';
const PREFIX = 'mcp-param-';
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const types: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean']);

/** Annotations below these are invalid, because they identify no single argument. */
const unreachable = [
  ...['items', 'prefixItems', 'contains', 'additionalProperties', 'unevaluatedProperties'],
  ...['unevaluatedItems', 'propertyNames', 'oneOf', 'anyOf', 'allOf', 'not', 'if', 'then', 'else'],
];
const unreachableMaps = ['patternProperties', 'dependentSchemas', '$defs', 'definitions'];

/** The arguments of a tool that are also sent as headers, or the problem with their annotations. */
export function parameterHeaders(inputSchema: unknown): ParameterHeader[] | { problem: string } {
  // Few tools have any, and walking all schemas takes time.
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

/** The header lines that repeat arguments. Throws if an argument is too long. */
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

/** The problem with the headers that repeat arguments, if any. `mayLack`: headers may be missing. */
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
    const decoded = textOfHeader(String(sent));
    if (decoded === undefined) return `the header ${header} ${headerProblem(String(sent))}`;
    if (decoded !== text && !isSameNumber(type, value, decoded))
      return `the header ${header} differs from the argument ${path.join('.')}`;
  }
  return undefined;
}

function isSameNumber(type: string, value: unknown, decoded: string): boolean {
  return type === 'integer' && typeof value === 'number' && isDecimal(decoded) && Number(decoded) === value;
}

function isDecimal(text: string): boolean {
  return /^-?\d+(\.\d+)?$/.test(text);
}

/** Returns undefined if a header cannot carry the value. */
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
