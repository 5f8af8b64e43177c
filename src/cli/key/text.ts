import type { IssuedKey, KeyView } from '../../api/access-views.ts';
import { endpointOf, KEY_VARIABLE } from '../defaults.ts';
import { claudeCommand, snippet } from '../gateway/banner.ts';
import { localTime, table } from '../output.ts';
import { agoText, expiryText, untilText } from '../times.ts';

export interface Surroundings {
  /** Where clients reach Switchboard. */
  url: string;
  asksForKeys: boolean;
}

type KeyState = 'active' | 'rotating' | 'expired';

export function keyState({ expires_at, secrets }: KeyView, now: Date): KeyState {
  const isOver = (time: string | null) => time !== null && Date.parse(time) <= now.getTime();
  const valid = secrets.filter((secret) => !isOver(secret.expires_at));
  if (isOver(expires_at) || valid.length === 0) return 'expired';
  return valid.length > 1 ? 'rotating' : 'active';
}

export function keyRow(key: KeyView, now: Date): string[] {
  const { name, role, expires_at, last_used_at } = key;
  return [
    name,
    placeText(key),
    role ?? 'no role',
    `expires ${untilText(expires_at, now)}`.replace('expires expired', 'expired'),
    last_used_at === null ? 'never used' : `used ${agoText(last_used_at, now)}`,
    keyState(key, now),
  ];
}

export function keyText(key: KeyView, now: Date): string {
  const { secrets } = key;
  return table([
    ['name', key.name],
    ['id', key.id],
    ['project', placeText(key)],
    ['role', key.role ?? 'none there'],
    ['state', keyState(key, now)],
    ['expires', expiryText(key.expires_at, now)],
    ['created', localTime(key.created_at)],
    ['last used', key.last_used_at === null ? 'never' : agoText(key.last_used_at, now)],
    ...secrets.map((secret, index) => [
      index === 0 ? 'secrets' : '',
      `sbk_${secret.id}…, made ${localTime(secret.created_at)}${endText(secret.expires_at, now)}`,
    ]),
  ]);
}

/** What to do with a new key. Does not repeat it. */
export function adviceText(key: IssuedKey, { url, asksForKeys }: Surroundings, now: Date): string {
  const endpoint = endpointOf({ url, project: key.project?.name });
  const place = key.project === null ? 'in all projects' : `in the project ${key.project.name}`;
  return [
    `The key ${key.name} has the role ${key.role} ${place}. It expires: ${expiryText(key.expires_at, now)}.`,
    'It is not shown again: put it into the client now, instead of <key>:',
    `  ${snippet(endpoint, true)}`,
    `  ${claudeCommand(endpoint, true)}`,
    `Commands on other machines take it from the environment variable ${KEY_VARIABLE}.`,
    ...(asksForKeys ? [] : [notAskedFor]),
  ].join('\n');
}

const notAskedFor =
  'note: This Switchboard does not ask for keys yet: its own user is let in without one. Start it with --auth or --public-url.';

export function placeText({ project }: KeyView): string {
  return project === null ? 'all projects' : project.name;
}

function endText(time: string | null, now: Date): string {
  return time === null ? '' : `, ends ${untilText(time, now)}`.replace('ends expired', 'ended');
}
