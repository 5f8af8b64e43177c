import type { KeyView } from '../../api/access-views.ts';
import { SwitchboardError } from '../../errors.ts';
import { maskKeys } from '../../identity/keys.ts';
import { callApi } from '../api.ts';
import { usageError } from '../exit.ts';

/** As lists and the audit log show it, also with the ellipsis. */
const publicId = /^(sbk_)?([A-Za-z0-9_-]{12})…?$/;

/** A whole key is refused here: it would be sent in a URL, which logs keep. Errors do not repeat it. */
export function withoutSecret(name: string): string {
  const masked = maskKeys(name);
  if (masked === name) return name;
  throw usageError(
    `A name is expected here, but ${masked} is a whole key. It was not sent. Use its name, or what comes before the dots. Replace it if others may have seen it, such as in the history of your shell: switchboard key rotate`,
  );
}

/** Passes on a key's name, project/name or id. Instead of a public id, which the API does not take, it passes on the key's id. */
export async function withKey<Result>(
  url: string,
  given: string,
  act: (key: string) => Promise<Result>,
): Promise<Result> {
  const [, prefix, id] = publicId.exec(withoutSecret(given)) ?? [];
  if (id === undefined) return act(given);
  if (prefix !== undefined) return act(await keyWith(url, id));
  try {
    // Also a name may have 12 characters.
    return await act(given);
  } catch (error) {
    if (!(error instanceof SwitchboardError) || error.code !== 'not_found') throw error;
    const key = await keyWith(url, id).catch(() => undefined);
    if (key === undefined) throw error;
    return act(key);
  }
}

async function keyWith(url: string, id: string): Promise<string> {
  const { keys } = await callApi<{ keys: KeyView[] }>(url, 'GET', '/keys');
  const key = keys.find(({ secrets }) => secrets.some((secret) => secret.id === id));
  if (key !== undefined) return key.id;
  throw new SwitchboardError('not_found', `There is no key with the public id ${id}.`);
}
