import type { WhoamiView } from '../../api/access-views.ts';
import { callApi } from '../api.ts';
import { givenKey } from '../credential.ts';
import { KEY_VARIABLE } from '../defaults.ts';
import type { ApiFlags } from '../options.ts';
import { printResult, table } from '../output.ts';
import { expiryText } from '../times.ts';

export async function whoami(flags: ApiFlags): Promise<void> {
  const me = await callApi<WhoamiView>(flags.url, 'GET', '/whoami');
  printResult(me, whoamiText(me, givenKey() !== undefined, new Date()), flags);
}

export function whoamiText(me: WhoamiView, hasKey: boolean, now: Date): string {
  const { kind, name, id, roles, groups, expires_at, address, authentication } = me;
  const list = roles.map(({ role, project }) =>
    project === null ? `${role} in all projects` : `${role} in ${project.name}`,
  );
  return table([
    ['name', name],
    ['kind', kind],
    ...(id === name || kind === 'local' ? [] : [['id', id]]),
    ...(list.length === 0
      ? [['roles', 'none']]
      : list.map((text, index) => [index === 0 ? 'roles' : '', text])),
    ...(groups.length === 0 ? [] : [['groups', groups.map((group) => group.name).join(', ')]]),
    ...(kind === 'local' ? [] : [['expires', expiryText(expires_at, now)]]),
    ['credential', credentialText(kind, hasKey)],
    ...(address === null ? [] : [['address', address]]),
    ['authentication', authentication ? 'on: every request needs a key' : 'off: no key is asked for'],
  ]);
}

function credentialText(kind: string, hasKey: boolean): string {
  if (kind !== 'local') return KEY_VARIABLE;
  const own = 'the user of this machine who runs Switchboard';
  return hasKey ? `${own}; ${KEY_VARIABLE} was sent, but not asked for` : own;
}
