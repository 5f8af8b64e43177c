/** The two kinds of MCP: with sessions, or without any state between requests. */
export type Era = 'legacy' | 'modern';

export const protocolVersion: Record<Era, string> = { legacy: '2025-11-25', modern: '2026-07-28' };

export function eraNamed(name: string): Era {
  if (name === 'legacy' || name === 'modern') return name;
  throw new Error(`there is no era "${name}"`);
}
