import type { StatusView } from '../api/views.ts';
import { type ErrorCode, errorTable, SwitchboardError } from '../errors.ts';
import { apiPassFor } from './access.ts';
import { adviceFor } from './advice.ts';
import { UnreachableError } from './exit.ts';
import { explained, redirection } from './reach.ts';
import { type Response, request } from './request.ts';

const TIMEOUT_MS = 30_000;

interface ApiOptions {
  /** Sent as JSON. */
  body?: object;
  query?: Record<string, string | undefined>;
  /** Rejects the change if the resource has a different version. */
  version?: number | null;
  timeoutMs?: number;
  /** Gets the lines of a stream of JSON, which is not returned then. */
  onLine?: (line: unknown) => void;
}

export async function callApi<View>(
  url: string,
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
  path: string,
  { body, query = {}, version, timeoutMs = TIMEOUT_MS, onLine }: ApiOptions = {},
): Promise<View> {
  const address = new URL(`${url}/api/v1${path}`);
  for (const [key, value] of Object.entries(query)) {
    if (value !== undefined) address.searchParams.set(key, value);
  }
  const condition: Record<string, string> = typeof version === 'number' ? { 'if-match': `"${version}"` } : {};
  const pass = await apiPassFor(url);
  const headers = { ...condition, ...pass.headers };
  const response = await reached(
    url,
    request(method, address.href, { ...pass, timeoutMs, headers, json: body, onLine }),
  );
  const moved = redirection(url, response);
  if (moved !== undefined) throw moved;
  if (response.status === 204 || response.isStream) return undefined as View;
  if (response.status < 300) return contentOf(url, response) as View;
  throw await explained(url, refusalOf(url, response));
}

export function refusalOf(url: string, response: Pick<Response, 'status' | 'contentType' | 'body'>): Error {
  return failureOf(response.status, contentOf(url, response));
}

/** The address that clients use. */
export async function clientUrl(url: string): Promise<string> {
  const { public_url } = await callApi<StatusView>(url, 'GET', '/status');
  return public_url ?? url;
}

/** Encodes each part. */
export function apiPath(...parts: string[]): string {
  return parts.map((part) => `/${encodeURIComponent(part)}`).join('');
}

export function projectPath(project: string, ...parts: string[]): string {
  return apiPath('projects', project, ...parts);
}

async function reached(url: string, response: Promise<Response>): Promise<Response> {
  try {
    return await response;
  } catch (error) {
    throw await explained(url, error);
  }
}

function contentOf(url: string, { contentType, body }: Pick<Response, 'contentType' | 'body'>): unknown {
  try {
    if (contentType.includes('json')) return JSON.parse(body.toString());
  } catch {
    // Reported below.
  }
  throw new UnreachableError(`The program at ${url} is not a Switchboard.`);
}

interface Failure {
  error?: { code?: string; message?: string; details?: Record<string, unknown> };
}

/** The API's error, with each problem on its own line. */
export function failureOf(status: number, content: unknown): SwitchboardError {
  const { code = '', message = `HTTP ${status}`, details = {} } = (content as Failure | null)?.error ?? {};
  const known = Object.hasOwn(errorTable, code) ? (code as ErrorCode) : 'internal';
  const problems = (details.problems ?? []) as { path: string; message: string }[];
  const lines = problems.map((problem) =>
    problem.path === '' ? problem.message : `${problem.path}: ${problem.message}`,
  );
  const text = lines.length === 0 ? message : lines.join('\n       ');
  return new SwitchboardError(known, text + adviceFor(known, details), { data: details });
}
