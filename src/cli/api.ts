import { type ErrorCode, errorTable, SwitchboardError } from '../errors.ts';
import { apiPassFor } from './access.ts';
import { URL_VARIABLE } from './defaults.ts';
import { UnreachableError } from './exit.ts';
import { type Answer, NeverSentError, request } from './request.ts';

const API_MS = 30_000;

interface ApiOptions {
  /** Sent as JSON. */
  body?: object;
  query?: Record<string, string | undefined>;
  /** Only this version is changed: where somebody else was faster, the change is refused. */
  version?: number | null;
  timeoutMs?: number;
}

/** One request to the API of the Switchboard at the address, and what it answers. */
export async function callApi<View>(
  url: string,
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
  path: string,
  { body, query = {}, version, timeoutMs = API_MS }: ApiOptions = {},
): Promise<View> {
  const address = new URL(`${url}/api/v1${path}`);
  for (const [key, value] of Object.entries(query)) {
    if (value !== undefined) address.searchParams.set(key, value);
  }
  const condition: Record<string, string> = typeof version === 'number' ? { 'if-match': `"${version}"` } : {};
  const pass = await apiPassFor(url);
  const headers = { ...condition, ...pass.headers };
  const answer = await reached(
    url,
    request(method, address.href, { ...pass, timeoutMs, headers, json: body }),
  );
  if (answer.status === 204) return undefined as View;
  if (answer.status < 300) return contentOf(url, answer) as View;
  throw refusalOf(url, answer);
}

/** What an answer that is none of success says. */
export function refusalOf(url: string, answer: Answer): Error {
  return failureOf(answer.status, contentOf(url, answer));
}

/** A path of the API, with what users named in it. */
export function apiPath(...parts: string[]): string {
  return parts.map((part) => `/${encodeURIComponent(part)}`).join('');
}

export function projectPath(project: string, ...parts: string[]): string {
  return apiPath('projects', project, ...parts);
}

export function noSwitchboard(url: string): UnreachableError {
  const named = URL.parse(process.env[URL_VARIABLE] ?? '')?.origin === url;
  const source = named ? `, the address in ${URL_VARIABLE}` : '';
  return new UnreachableError(`There is no Switchboard at ${url}${source}. Start one with: switchboard up`);
}

async function reached(url: string, answer: Promise<Answer>): Promise<Answer> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof NeverSentError) throw noSwitchboard(url);
    throw error;
  }
}

function contentOf(url: string, { contentType, body }: Answer): unknown {
  try {
    if (contentType.includes('json')) return JSON.parse(body.toString());
  } catch {
    // Said below.
  }
  throw new UnreachableError(`What answers at ${url} is not a Switchboard.`);
}

interface Failure {
  error?: { code?: string; message?: string; details?: Record<string, unknown> };
}

/** The API's error as one of ours, with its problems on lines of their own. */
export function failureOf(status: number, content: unknown): SwitchboardError {
  const { code = '', message = `HTTP ${status}`, details = {} } = (content as Failure | null)?.error ?? {};
  const known = Object.hasOwn(errorTable, code) ? (code as ErrorCode) : 'internal';
  const problems = (details.problems ?? []) as { path: string; message: string }[];
  const lines = problems.map((problem) =>
    problem.path === '' ? problem.message : `${problem.path}: ${problem.message}`,
  );
  const text = lines.length === 0 ? message : lines.join('\n       ');
  return new SwitchboardError(known, text, { data: details });
}
