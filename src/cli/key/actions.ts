import type { IssuedKey, KeyView, WhoamiView } from '../../api/access-views.ts';
import { apiPath, callApi, clientUrl } from '../api.ts';
import { exitCodes, usageError } from '../exit.ts';
import type { ApiFlags } from '../options.ts';
import { complain, print, printJson, printList, printResult } from '../output.ts';
import { confirmRemoval } from '../prompt.ts';
import { expiryText, untilText } from '../times.ts';
import { withKey, withoutSecret } from './reference.ts';
import { adviceText, keyRow, keyText, placeText, type Surroundings } from './text.ts';

interface NewKeyFlags extends ApiFlags {
  project?: string;
  role: string;
  /** A time, or `never`. */
  expires: string;
}

/** The key is all that stdout gets, so that it can go into a file. */
export async function addKey(name: string, flags: NewKeyFlags): Promise<void> {
  const { url, project, role } = flags;
  const body = { name: withoutSecret(name), project, role, ...expiryOf(flags) };
  // Nothing may fail between the key and its output.
  const surroundings = flags.json ? undefined : await surroundingsOf(url);
  const key = await callApi<IssuedKey>(url, 'POST', '/keys', { body });
  if (surroundings === undefined) {
    printJson(key);
    return;
  }
  complain(adviceText(key, surroundings, new Date()));
  printKey(key);
}

export async function listKeys(flags: ApiFlags & { project?: string }): Promise<void> {
  const { keys } = await callApi<{ keys: KeyView[] }>(flags.url, 'GET', '/keys', {
    query: { project: flags.project },
  });
  const now = new Date();
  printList('keys', keys, (key) => keyRow(key, now), flags);
}

export async function showKey(name: string, flags: ApiFlags): Promise<void> {
  const key = await findKey(name, flags);
  printResult(key, keyText(key, new Date()), flags);
}

export async function rotateKey(
  name: string,
  flags: ApiFlags & { overlap: number; expires?: string },
): Promise<void> {
  const body = { overlap_ms: flags.overlap, ...expiryOf(flags) };
  const key = await withKey(flags.url, name, (found) =>
    callApi<IssuedKey>(flags.url, 'POST', apiPath('keys', found, 'rotate'), { body }),
  );
  if (flags.json) {
    printJson(key);
    return;
  }
  const now = new Date();
  const before = key.secrets.find(({ expires_at }) => expires_at !== null)?.expires_at ?? null;
  complain(
    `This is the new key ${key.name}, which is not shown again. It expires: ${expiryText(key.expires_at, now)}.`,
  );
  complain(
    before === null ? 'The old one has ended.' : `The old one works until it ends ${untilText(before, now)}.`,
  );
  printKey(key);
}

export async function revokeKey(name: string, flags: ApiFlags & { yes?: boolean }): Promise<number> {
  const key = await findKey(name, flags);
  const question = `Revoke the key ${key.name} of ${placeText(key)}? Its program is disconnected at once.`;
  if (!(await confirmRemoval(question, flags))) return exitCodes.failed;
  await callApi(flags.url, 'DELETE', apiPath('keys', key.id));
  const revoked = name.includes('/') ? name : key.name;
  printResult({ revoked }, `revoked key ${revoked}`, flags);
  return exitCodes.ok;
}

export async function changeKey(
  name: string,
  flags: ApiFlags & { name?: string; expires?: string },
): Promise<void> {
  const body = { ...(flags.name === undefined ? {} : { name: flags.name }), ...expiryOf(flags) };
  if (Object.keys(body).length === 0) throw usageError('Nothing to change: use --name or --expires.');
  const key = await withKey(flags.url, name, (found) =>
    callApi<KeyView>(flags.url, 'PATCH', apiPath('keys', found), { body }),
  );
  printResult(key, keyText(key, new Date()), flags);
}

function findKey(name: string, { url }: ApiFlags): Promise<KeyView> {
  return withKey(url, name, (found) => callApi<KeyView>(url, 'GET', apiPath('keys', found)));
}

function expiryOf({ expires }: { expires?: string }): object {
  return expires === undefined ? {} : { expires_at: expires === 'never' ? null : expires };
}

async function surroundingsOf(url: string): Promise<Surroundings> {
  const { authentication } = await callApi<WhoamiView>(url, 'GET', '/whoami');
  return { url: await clientUrl(url), asksForKeys: authentication };
}

function printKey({ key }: IssuedKey): void {
  print(key);
}
