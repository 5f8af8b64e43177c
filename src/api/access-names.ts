import { hostedName } from '../config/fields.ts';
import { KEY_PREFIX } from '../identity/keys.ts';

/** The ids and names under which the audit log shows who is no key. */
const reserved = ['local', 'local user', 'system', 'Switchboard', 'unknown'];
/** Two names that look alike may be taken for each other. The Braille blank is a symbol, but shows nothing. */
const invisible = /[\p{Cf}\p{Co}\p{Default_Ignorable_Code_Point}\u2800]|[^\P{Zs} ]/u;
const visible = /[\p{L}\p{N}\p{P}\p{S}]/u;
const atEnds = /^ | $/;

/** For new names that are part of paths: a key in a URL is refused. */
export const noKey = [
  (name: string) => !name.includes(KEY_PREFIX),
  `must not contain "${KEY_PREFIX}", with which keys begin`,
] as const;

/** The name of a key or a group, as people read it in lists and in the audit log. */
export const accessName = hostedName
  .normalize('NFC')
  .refine((name) => !reserved.includes(name), `must not be one of ${reserved.join(', ')}`)
  .refine(...noKey)
  .refine((name) => !invisible.test(name), 'must not contain an invisible character, nor a space but " "')
  .refine((name) => !atEnds.test(name), 'must not begin or end with a space')
  .refine((name) => visible.test(name), 'must contain a visible character')
  .meta({
    ...hostedName.meta(),
    allOf: [
      { not: { enum: reserved } },
      { not: { pattern: KEY_PREFIX } },
      { not: { pattern: invisible.source } },
      { not: { pattern: atEnds.source } },
      { pattern: visible.source },
    ],
  });
