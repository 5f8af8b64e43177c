/** The two eras of MCP: with sessions, and without state between requests. */
export type Era = 'legacy' | 'modern';

export const protocolVersion: Record<Era, string> = { legacy: '2025-11-25', modern: '2026-07-28' };

export function eraNamed(name: string): Era {
  if (name === 'legacy' || name === 'modern') return name;
  throw new Error(`unknown era "${name}": use legacy or modern`);
}
