import type { Item } from './lazy-item.ts';

export type ListName = 'tools' | 'resources' | 'templates' | 'prompts';
/** Kinds of things that are known by a name. */
export type NamedKind = 'tools' | 'prompts';

/** What one server offers. */
export interface ServerOffer {
  server: string;
  /** What stands for it in URIs. Unlike its name it is unique in the catalog. */
  place: string;
  prefix: string;
  tools: readonly Item[];
  resources: readonly Item[];
  templates: readonly Item[];
  prompts: readonly Item[];
}

/** What a group brings into a catalog: what its servers offer, as one. */
export interface Contribution {
  /** What stands for the group in URIs. Unlike its name it is unique in the catalog. */
  place: string;
  group: string;
  /** Whose it is, where that is worth telling. */
  project: string | undefined;
  prefix: string;
  servers: readonly ServerOffer[];
  /** Tools that are not listed, but keep their names: others are called the same whether these are switched on or off. */
  switchedOff: readonly string[];
}
