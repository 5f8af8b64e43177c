import type { IncomingMessage } from 'node:http';
import type { z } from 'zod';
import { ConfigSyntaxError, parseJson } from '../../config/json.ts';
import { MAX_PROBLEMS, type Problem } from '../../config/problems.ts';
import { SwitchboardError } from '../../errors.ts';
import { readBody } from '../../http/body.ts';
import { hasMoreValues, MAX_VALUES } from '../../protocol/bounded-parse.ts';
import { check, invalidInput } from './check.ts';

const MAX_BYTES = 4 * 1024 * 1024;
/** The check is synchronous, so it must be bounded. */
const MAX_CHECKED_VALUES = 20_000;
/** Locating a syntax error takes longer than detecting it. */
const MAX_EXPLAINED_LENGTH = 16 * 1024;

/** Undefined if the client disconnected, or the signal aborted the request before all of it was there. */
export async function readText(request: IncomingMessage, signal?: AbortSignal): Promise<string | undefined> {
  if (signal?.aborted) return undefined;
  const bytes = await readBytes(request, signal);
  if (bytes === undefined) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new SwitchboardError('invalid_input', 'The body is not valid UTF-8.');
  }
}

/** Returns an object that the database can store. */
export function parseBody(text: string): Record<string, unknown> {
  const value = parseObject(text, MAX_CHECKED_VALUES);
  checkStorable(value);
  return value;
}

export function parseObject(text: string, maxValues = MAX_VALUES): Record<string, unknown> {
  if (hasMoreValues(text, maxValues)) {
    throw new SwitchboardError('invalid_input', `The body has more than ${maxValues} values in it.`);
  }
  const value = parseOrExplain(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new SwitchboardError('invalid_input', 'The body must be a JSON object.');
  }
  return value as Record<string, unknown>;
}

/**
 * Requires JSON for all changes, even without a body: any web page can make a browser post a form or an empty body, but
 * JSON requires a CORS preflight.
 */
export function checkMediaType({ method, headers }: IncomingMessage): void {
  const { 'content-type': header, 'content-length': length = '0', 'transfer-encoding': encoding } = headers;
  const isBare = method === 'DELETE' && length === '0' && encoding === undefined;
  if (method === 'GET' || method === 'HEAD' || isBare) return;
  const [type = '', ...parameters] = (header ?? '').split(';').map((part) => part.trim().toLowerCase());
  const charset = parameters.find((parameter) => parameter.startsWith('charset='))?.slice(8);
  if (type === 'application/json' && /^("?)utf-?8\1$/.test(charset ?? 'utf-8')) return;
  throw new SwitchboardError(
    'unsupported_media_type',
    'The body must be JSON in UTF-8: send "Content-Type: application/json", even without a body.',
  );
}

function readBytes(request: IncomingMessage, signal: AbortSignal | undefined): Promise<Buffer | undefined> {
  return new Promise((resolve, reject) => {
    readBody(request, MAX_BYTES, (error, body) => (error === undefined ? resolve(body) : reject(error)));
    request.on('error', () => resolve(undefined));
    request.on('close', () => resolve(undefined));
    signal?.addEventListener('abort', () => resolve(undefined), { once: true });
  });
}

/** The message of JSON.parse would quote the body, which may be secret. */
function parseOrExplain(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new SwitchboardError('invalid_input', `The body is not valid JSON${explained(text)}.`);
  }
}

function explained(text: string): string {
  if (text.trim() === '') return ': it is empty';
  if (text.length > MAX_EXPLAINED_LENGTH) return '';
  try {
    parseJson(text);
    return ': it has comments or trailing commas in it';
  } catch (error) {
    if (!(error instanceof ConfigSyntaxError)) throw error;
    const { line, column } = error.position;
    return ` (line ${line}, column ${column}): ${error.message}`;
  }
}

/** For bodies with tool results, which may contain any text. */
export function readToolBody<Schema extends z.ZodType>(schema: Schema, body: string): z.output<Schema> {
  const value = parseObject(body);
  checkDepth(value);
  return check(schema, value);
}

/** No valid body is nested deeper, and code that reads it later may not support more. */
const MAX_DEPTH = 64;
const tooDeep: Problem = { path: [], message: `The body is nested deeper than ${MAX_DEPTH} levels` };

/** Rejects texts that PostgreSQL cannot store: with NUL, or with half of a surrogate pair. */
export function checkStorable(value: unknown): void {
  const problems: Problem[] = [];
  collect(value, [], problems);
  if (problems.length > 0) throw invalidInput(problems);
}

function checkDepth(value: unknown, depth = 0): void {
  if (typeof value !== 'object' || value === null) return;
  if (depth === MAX_DEPTH) throw invalidInput([tooDeep]);
  for (const part of Object.values(value)) checkDepth(part, depth + 1);
}

/** `path` is shared and mutated, because copying it for each value would be slow. */
function collect(value: unknown, path: PropertyKey[], problems: Problem[]): void {
  if (typeof value === 'string') {
    judge(value, path, problems);
  } else if (typeof value === 'object' && value !== null) {
    if (path.length === MAX_DEPTH) {
      problems.push(tooDeep);
      return;
    }
    const isList = Array.isArray(value);
    for (const key of Object.keys(value)) {
      if (problems.length >= MAX_PROBLEMS) return;
      judge(key, path, problems);
      path.push(isList ? Number(key) : key);
      collect((value as Record<string, unknown>)[key], path, problems);
      path.pop();
    }
  }
}

function judge(text: string, path: PropertyKey[], problems: Problem[]): void {
  if (text.includes('\0')) problems.push({ path: [...path], message: 'must not contain a NUL character' });
  if (!text.isWellFormed()) {
    problems.push({ path: [...path], message: 'must not contain half of a surrogate pair' });
  }
}
