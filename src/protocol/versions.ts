/** The two kinds of MCP: with sessions, or without any state between requests. */
export type Era = 'legacy' | 'modern';

export const otherEra: Readonly<Record<Era, Era>> = { legacy: 'modern', modern: 'legacy' };

/** The version of the modern era that we speak on both sides. */
export const modernVersion = '2026-07-28';

/** Protocol versions of the legacy era that we speak on both sides, newest first. */
export const protocolVersions = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const;

export type ProtocolVersion = (typeof protocolVersions)[number];

export const newestVersion: ProtocolVersion = protocolVersions[0];

export function isProtocolVersion(version: unknown): version is ProtocolVersion {
  return (protocolVersions as readonly unknown[]).includes(version);
}

/** Versions are dates: every later one is of the modern era, whether we speak it or not. */
export function namesModernEra(version: unknown): version is string {
  return typeof version === 'string' && /^\d{4}-\d{2}-\d{2}$/.test(version) && version >= modernVersion;
}

/** JSON-RPC batches came with 2025-03-26 and left with the next version. */
export function allowsBatches(version: ProtocolVersion): boolean {
  return version === '2025-03-26';
}

/** From 2025-11-25 on, clients know streams that begin with an event without data. */
export function allowsPrimer(version: ProtocolVersion): boolean {
  return version === '2025-11-25';
}
