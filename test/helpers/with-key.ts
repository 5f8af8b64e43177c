import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Role } from '../../src/identity/roles.ts';
import { HttpProxy } from './http-proxy.ts';

/** The role of the key that all clients of a test run use; undefined for runs without authentication. */
export function roleOfRun(): Role | undefined {
  return process.env.TEST_ROLE as Role | undefined;
}

export interface NewKey {
  name: string;
  role: Role;
  /** Undefined for all projects. */
  project?: string | undefined;
  expires_at?: string;
}

/** Adds a key as the local user of a Switchboard with authentication, and returns its text. */
export async function addKey(
  { baseUrl, home }: { baseUrl: string; home: string },
  key: NewKey,
): Promise<string> {
  const response = await fetch(`${baseUrl}/api/v1/keys`, {
    method: 'POST',
    headers: { ...(await tokenHeader(home)), 'content-type': 'application/json' },
    body: JSON.stringify(key),
  });
  const body = (await response.json()) as { key: string };
  if (response.status !== 201) throw new Error(`no key (${response.status}): ${JSON.stringify(body)}`);
  return body.key;
}

/** Makes a request from this machine the local user's. */
export async function tokenHeader(home: string): Promise<{ authorization: string }> {
  return { authorization: `Bearer ${(await readFile(join(home, 'token'), 'utf8')).trim()}` };
}

/** Adds the key to each request, for clients that know nothing of it. */
export function startKeyAdder(baseUrl: string, key: string): Promise<HttpProxy> {
  return HttpProxy.start(baseUrl, undefined, {
    host: new URL(baseUrl).host,
    authorization: `Bearer ${key}`,
  });
}
