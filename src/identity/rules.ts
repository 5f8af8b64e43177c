import { allowedBy } from '../config/tool-patterns.ts';
import type { Role } from './roles.ts';
import { spellings } from './spellings.ts';

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
}

/** The rules for one principal in one project. The most specific one decides; of equal ones, a denial does. */
export class RuleSet {
  private readonly ordered: readonly {
    rule: Rule;
    matches: (item: Item, names: readonly string[]) => boolean;
  }[];

  constructor(rules: readonly Rule[]) {
    this.ordered = rules
      .toSorted(bySpecificity)
      .map((rule) => ({ rule, matches: rule.effect === 'deny' ? denial(rule) : permission(rule) }));
  }

  /** The rule that decides; undefined if none matches, so that the role decides. */
  decider(item: Item): Rule | undefined {
    const names = item.kind === 'resource' ? spellings(item.name) : [item.name];
    return this.ordered.find(({ matches }) => matches(item, names))?.rule;
  }
}

/** A denial matches if any reading of the item does, in any case. */
function denial(rule: Rule) {
  const isServer = anyCase(rule.server);
  const isName = anyCase(rule.name);
  return ({ kind, servers, hints }: Item, names: readonly string[]): boolean =>
    (rule.kind === undefined || rule.kind === kind) &&
    servers.some(isServer) &&
    names.some(isName) &&
    hintsOf(kind, hints).some((hint) => fitsHint(rule, hint));
}

/** A permission matches only if every reading of the item does. */
function permission(rule: Rule) {
  const isServer = sameCase(rule.server);
  const isName = sameCase(rule.name);
  return ({ kind, servers: [group, ...members], hints }: Item, names: readonly string[]): boolean =>
    (rule.kind === undefined || rule.kind === kind) &&
    (isServer(group!) || (members.length > 0 && members.every(isServer))) &&
    names.every(isName) &&
    hintsOf(kind, hints).every((hint) => fitsHint(rule, hint));
}

function sameCase(pattern: string): (text: string) => boolean {
  const matches = allowedBy([pattern]);
  return (name) => matches({ name });
}

function anyCase(pattern: string): (text: string) => boolean {
  const matches = allowedBy([pattern.toLowerCase()]);
  return (name) => matches({ name: name.toLowerCase() });
}

interface EffectiveHint {
  readOnly: boolean;
  destructive: boolean;
}

const harmless: readonly EffectiveHint[] = [{ readOnly: true, destructive: false }];
const unknown: readonly EffectiveHint[] = [{ readOnly: false, destructive: true }];

/** Prompts and resources only return data. A tool without annotations may do anything. */
function hintsOf(kind: ItemKind, hints: readonly Hints[]): readonly EffectiveHint[] {
  if (kind !== 'tool') return harmless;
  if (hints.length === 0) return unknown;
  return hints.map(({ readOnlyHint, destructiveHint }) => {
    const readOnly = readOnlyHint === true;
    return { readOnly, destructive: destructiveHint === true || (!readOnly && destructiveHint !== false) };
  });
}

function fitsHint(rule: Rule, hint: EffectiveHint): boolean {
  return (
    (rule.readOnly === undefined || rule.readOnly === hint.readOnly) &&
    (rule.destructive === undefined || rule.destructive === hint.destructive)
  );
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

/** Compared from the first number on. */
export function specificity({ subject, name, server, readOnly, destructive, kind, project }: Rule): number[] {
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
function bySpecificity(one: Rule, other: Rule): number {
  const [mine, theirs] = [specificity(one), specificity(other)];
  const at = mine.findIndex((value, index) => value !== theirs[index]);
  if (at !== -1) return theirs[at]! - mine[at]!;
  return Number(one.effect === 'allow') - Number(other.effect === 'allow');
}
