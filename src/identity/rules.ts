import type { Role } from './roles.ts';

export const itemKinds = ['tool', 'prompt', 'resource'] as const;
export type ItemKind = (typeof itemKinds)[number];
export const effects = ['allow', 'deny'] as const;

export type Subject =
  | { kind: 'everyone' }
  | { kind: 'role'; role: Role }
  | { kind: 'group'; id: string }
  | { kind: 'principal'; id: string };

/** Allows or denies the use of items. In patterns, `*` matches any text. */
export interface Rule {
  readonly id: string;
  readonly effect: (typeof effects)[number];
  /** The id of its project; undefined for all projects. */
  readonly project: string | undefined;
  readonly subject: Subject;
  /** Undefined for all kinds. */
  readonly kind: ItemKind | undefined;
  /** A pattern of server names. */
  readonly server: string;
  /** A pattern of the servers' own names, or of URIs. */
  readonly name: string;
  /** Matches only items whose hint, or its default, has this value. */
  readonly readOnly: boolean | undefined;
  readonly destructive: boolean | undefined;
}

export interface Hints {
  readOnlyHint?: unknown;
  destructiveHint?: unknown;
}

/** What a rule is about. */
export interface Item {
  kind: ItemKind;
  /** The group, and the servers in it. A server without a group is a group of one. */
  servers: readonly string[];
  /** The servers' own name, URI or URI template. */
  name: string;
  /** The annotations of a tool, as each server gives them. */
  hints: readonly Hints[];
  /** Set for items of a list that is being built: the decision is kept for the next time. */
  isListed?: boolean;
  /** Set if the name is a URI template, and the request may reveal any URI of it. */
  revealsAll?: boolean;
  /** What the request says about the URIs that it may reveal, as JSON. Without it, they may be any. */
  input?: string;
}

/** As a person would say it, for example: deny role caller tool github/delete_* */
export function ruleText({ effect, subject, kind, server, name, readOnly, destructive }: Rule): string {
  const who =
    subject.kind === 'everyone'
      ? 'everyone'
      : `${subject.kind} ${subject.kind === 'role' ? subject.role : subject.id}`;
  const hints = [
    ...(readOnly === undefined ? [] : [readOnly ? 'read-only' : 'not read-only']),
    ...(destructive === undefined ? [] : [destructive ? 'destructive' : 'not destructive']),
  ];
  return [effect, who, kind ?? 'anything', `${server}/${name}`, ...hints].join(' ');
}

const subjectRank = { everyone: 0, role: 1, group: 2, principal: 3 };

const specificities = new WeakMap<Rule, readonly number[]>();

function specificity(rule: Rule): readonly number[] {
  let numbers = specificities.get(rule);
  if (numbers === undefined) {
    numbers = specificityOf(rule);
    specificities.set(rule, numbers);
  }
  return numbers;
}

/** Compared from the first number on. */
function specificityOf({ subject, name, server, readOnly, destructive, kind, project }: Rule): number[] {
  const conditions = Number(readOnly !== undefined) + Number(destructive !== undefined);
  return [
    subjectRank[subject.kind],
    ...patternRank(name),
    ...patternRank(server),
    conditions,
    Number(kind !== undefined),
    Number(project !== undefined),
  ];
}

/** A name without stars is more specific than any pattern; of patterns, the one with more other characters is. */
function patternRank(pattern: string): [number, number] {
  const literals = pattern.replaceAll('*', '').length;
  return literals === pattern.length ? [1, 0] : [0, literals];
}

/** The most specific first; of equals, denials first. */
export function bySpecificity(one: Rule, other: Rule): number {
  const [mine, theirs] = [specificity(one), specificity(other)];
  const at = mine.findIndex((value, index) => value !== theirs[index]);
  if (at !== -1) return theirs[at]! - mine[at]!;
  return Number(one.effect === 'allow') - Number(other.effect === 'allow');
}
