import { SwitchboardError } from '../../errors.ts';

interface Versioned {
  version: number | null;
}

export function ok<Body>(body: Body) {
  return { status: 200 as const, body };
}

/** One thing, with the version that a change can name. */
export function current<View extends Versioned>(view: View) {
  return { status: 200 as const, body: view, headers: etagOf(view) };
}

/** `place` is the way to the new thing below /api/v1. */
export function created<View extends object>(view: View, place: readonly string[]) {
  const location = ['/api/v1', ...place.map(encodeURIComponent)].join('/');
  return { status: 201 as const, body: view, headers: { location, ...etagOf(view) } };
}

export const noContent = { status: 204, body: undefined } as const;

/** What `If-Match` asks for: one version, or any. */
export function versionOf(header: string | undefined): number | undefined {
  if (header === undefined || header.trim() === '*') return undefined;
  const version = /^\s*"([1-9]\d{0,14})"\s*$/.exec(header)?.[1];
  if (version !== undefined) return Number(version);
  throw new SwitchboardError(
    'invalid_input',
    'If-Match must be one ETag as it was sent, such as "7" with its quotes, or *.',
  );
}

function etagOf(view: object): Record<string, string> {
  const { version } = view as Partial<Versioned>;
  return typeof version === 'number' ? { etag: `"${version}"` } : {};
}
