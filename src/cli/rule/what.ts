import { type ItemKind, itemKinds } from '../../identity/rules.ts';
import { usageError } from '../exit.ts';

export interface What {
  kind?: ItemKind;
  server: string;
  name: string;
}

const form =
  'Write [kind:]server/name, such as tool:github/delete_*, github/*, resource:files/file:///secret/*, or * for everything.';

/** `[kind:]server/name`, where the kind is tool, prompt or resource; `*` is everything. */
export function readWhat(text: string): What {
  const { kind, rest } = kindOf(text);
  if (rest === '*') return { ...kind, server: '*', name: '*' };
  // Names and URIs may contain slashes; servers do not.
  const slash = rest.indexOf('/');
  const [server, name] = [rest.slice(0, slash), rest.slice(slash + 1)];
  if (slash < 1 || name === '') {
    throw usageError(`${JSON.stringify(text)} does not say what the rule is about. ${form}`);
  }
  if (server.includes(':')) {
    throw usageError(`${JSON.stringify(text)} has an unknown kind. ${form}`);
  }
  return { ...kind, server, name };
}

/** A prefix that is no kind stays, as the scheme of a URI does. */
export function kindOf(text: string): { kind?: { kind: ItemKind }; rest: string } {
  const colon = text.indexOf(':');
  const kind = itemKinds.find((each) => each === text.slice(0, Math.max(0, colon)));
  return kind === undefined ? { rest: text } : { kind: { kind }, rest: text.slice(colon + 1) };
}

export function whatText({
  kind,
  server,
  name,
}: {
  kind: ItemKind | null;
  server: string;
  name: string;
}): string {
  if (server === '*' && name === '*') return kind === null ? 'everything' : `every ${kind}`;
  return `${kind === null ? '' : `${kind}:`}${server}/${name}`;
}
