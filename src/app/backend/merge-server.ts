import { contradictions, misfits } from '../../api/contradictions.ts';
import { invalidInput } from '../../api/http/problems.ts';
import type { NewServer, ServerChanges, ServerSettings } from '../../api/server-input.ts';

/** A server after changes. Throws where its parts do not fit each other then. */
export function mergeServer(server: NewServer, { settings, ...changes }: ServerChanges): NewServer {
  const kept = Object.entries({ ...server.settings, ...settings }).filter(
    ([, setting]) => setting !== null && setting !== undefined,
  );
  const merged = { ...server, ...changes, settings: Object.fromEntries(kept) as ServerSettings };
  const wrong = [
    ...misfits(merged.transport, merged.config, ['config']),
    ...contradictions({ transport: merged.transport, ...merged.settings }),
  ];
  if (wrong.length > 0) throw invalidInput(wrong);
  return merged;
}
