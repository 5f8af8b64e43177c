/** The two generations of MCP: with sessions, or stateless. */
export type Era = 'legacy' | 'modern';

export const otherEra: Readonly<Record<Era, Era>> = { legacy: 'modern', modern: 'legacy' };

/** The modern version that we support with clients and servers. */
export const modernVersion = '2026-07-28';

/** The legacy versions that we support with clients and servers, newest first. */
export const protocolVersions = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const;

export type ProtocolVersion = (typeof protocolVersions)[number];

export const newestVersion: ProtocolVersion = protocolVersions[0];

export function isProtocolVersion(version: unknown): version is ProtocolVersion {
  return (protocolVersions as readonly unknown[]).includes(version);
}

/** Versions are dates: all later ones are modern, even if we do not support them. */
export function namesModernEra(version: unknown): version is string {
  return typeof version === 'string' && /^\d{4}-\d{2}-\d{2}$/.test(version) && version >= modernVersion;
}

export function allowsBatches(version: ProtocolVersion): boolean {
  return version === '2025-03-26';
}

/** Since 2025-11-25, clients accept streams that start with an event without data. */
export function allowsPrimer(version: ProtocolVersion): boolean {
  return version === '2025-11-25';
}
