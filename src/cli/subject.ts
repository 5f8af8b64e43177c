import { type Role, roles } from '../identity/roles.ts';
import { usageError } from './exit.ts';

export type Holder = { principal: string } | { group: string };
export type Subject = 'everyone' | { role: Role } | Holder;

/** `group:NAME`, or a principal. */
export function holder(text: string): Holder {
  const [, group] = /^group:(.+)$/.exec(text) ?? [];
  return group === undefined ? { principal: text } : { group };
}

/** `everyone`, `role:ROLE`, `group:NAME`, or a principal. */
export function subject(text: string): Subject {
  if (text === 'everyone') return text;
  const [, role] = /^role:(.*)$/.exec(text) ?? [];
  if (role === undefined) return holder(text);
  const known = roles.find((each) => each === role);
  if (known !== undefined) return { role: known };
  throw usageError(`There is no role ${JSON.stringify(role)}. The roles are: ${roles.join(', ')}.`);
}
