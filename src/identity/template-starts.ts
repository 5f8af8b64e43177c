import { looseSpellings } from './spellings.ts';

/**
 * With these in its input, a value can lead out of the folder that its template names. The input is JSON, in which a backslash
 * can stand for anything.
 */
const leadsAnywhere = /\.\.|[%\\]|"\s*[/.]|\."/;
/** A dot before an expression may become two. */
const isOpenTemplate = /\.\.|[%\\]|\.\{/;
const scheme = /^[a-z][a-z0-9+.-]*:/i;
/** A host that is not complete may turn out to be a user name. */
const isOpenHost = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*$/i;

/**
 * What every URI begins with that a request about a template may reveal. `input`: the values for its expressions, as JSON;
 * without it, they may be any.
 */
export function startsOfTemplate(template: string, input: string | undefined): readonly string[] {
  const start = template.split('{', 1)[0]!;
  const isOpen = input === undefined || leadsAnywhere.test(input) || isOpenTemplate.test(template);
  return isOpen || isOpenHost.test(start) ? [scheme.exec(start)?.[0] ?? ''] : startsOf(start);
}

/** The spellings of an incomplete URI. */
export function startsOf(start: string): readonly string[] {
  const rest = 'x';
  const uris = looseSpellings(start + rest) ?? [''];
  return uris.map((uri) => (uri.endsWith(rest) ? uri.slice(0, -rest.length) : uri));
}
