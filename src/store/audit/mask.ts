import { MASK, maskText } from '../../config/credentials.ts';
import { maskKeys } from '../../identity/keys.ts';
import { isObject } from '../../json.ts';

/** Fields whose values are all hidden: which of them are credentials is only a guess. */
const hiddenValues = new Set(['env', 'environment', 'headers']);
/** Names a value, and does not contain it. */
const reference = /^\$\{(?:env:)?\w+\}$/;
const LONGEST_SUBJECT = 500;
/** Masks need what follows a credential too: `https://user:password@host`. */
const READ_SUBJECT = 2_000;
const MAX_DEPTH = 100;

/** What a denial is about is what somebody sent: a key in the wrong field, or a URI with a token. */
export function maskedSubject(text: string): string {
  return maskKeys(maskText(text.slice(0, READ_SUBJECT))).slice(0, LONGEST_SUBJECT);
}

/** Of parsed JSON. Whoever made it has masked what it knows to be a credential. */
export function maskedContent(value: unknown, field = '', depth = 0): unknown {
  if (typeof value === 'string') return maskKeys(field === 'url' ? maskedUrl(value) : value);
  if (typeof value !== 'object' || value === null) return value;
  if (depth > MAX_DEPTH) return { omitted: 'it is nested too deeply' };
  if (Array.isArray(value)) {
    return value.map((item) =>
      hiddenValues.has(field) ? hiddenPair(item) : maskedContent(item, field, depth + 1),
    );
  }
  const entries = Object.entries(value).map(([name, item]) => [
    maskKeys(name),
    hiddenValues.has(field) ? hidden(item) : maskedContent(item, name, depth + 1),
  ]);
  return Object.fromEntries(entries);
}

function hidden(value: unknown): unknown {
  return value === null || (typeof value === 'string' && reference.test(value)) ? value : MASK;
}

/** `NAME=value` */
function hiddenPair(item: unknown): unknown {
  if (isObject(item) && typeof item.name === 'string') return { name: maskKeys(item.name), value: MASK };
  const end = typeof item === 'string' ? item.indexOf('=') : -1;
  return end === -1 ? MASK : `${maskKeys((item as string).slice(0, end))}=${MASK}`;
}

/** Leaves the place, and the names of parameters. */
function maskedUrl(url: string): string {
  const [, place = '', query, fragment] = /^([^?#]*)(?:\?([^#]*))?(?:#([\s\S]*))?$/.exec(maskText(url)) ?? [];
  const bare = place.replace(/:\/\/([^/]*)@/, (whole, user: string) =>
    user.split(':').every((part) => reference.test(part)) ? whole : `://${MASK}@`,
  );
  const parameters = query?.split('&').map((parameter) => {
    const end = parameter.indexOf('=');
    return end === -1 ? MASK : `${parameter.slice(0, end)}=${hidden(parameter.slice(end + 1))}`;
  });
  return [
    bare,
    ...(parameters === undefined ? [] : [`?${parameters.join('&')}`]),
    ...(fragment === undefined ? [] : [`#${MASK}`]),
  ].join('');
}
