import { SwitchboardError } from '../errors.ts';
import { type Role, roles } from '../identity/roles.ts';
import { usageError } from './exit.ts';
import { withoutSecret } from './key/reference.ts';

export type Holder = { principal: string } | { group: string };
export type Subject = 'everyone' | { role: Role } | Holder;

/** `group:NAME`, or a principal. */
export function holder(text: string): Holder {
  const [, group] = /^group:(.+)$/.exec(text) ?? [];
  return group === undefined ? { principal: withoutSecret(text) } : { group };
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

/** Who names a group without `group:` is told that there is no such key. */
export async function orGroup<Result>(text: string, action: () => Promise<Result>): Promise<Result> {
  try {
    return await action();
  } catch (error) {
    const isName = !/^(?:group|role):|^everyone$/.test(text);
    if (!(error instanceof SwitchboardError) || error.code !== 'not_found' || !isName) throw error;
    const message = `${error.message} For a group, write group:${text}.`;
    throw new SwitchboardError(error.code, message, { data: error.data });
  }
}

/** Where a group cannot be named. */
export function onlyKey(text: string, what: string): string {
  if (/^(?:group|role):|^everyone$/.test(text)) {
    throw usageError(`${what} takes a key, not ${JSON.stringify(text)}: its name, project/name, or id.`);
  }
  return withoutSecret(text);
}
