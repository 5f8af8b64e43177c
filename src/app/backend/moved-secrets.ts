import { variablesIn } from '../../config.ts';

/** What has become secrets when a configuration was written: references that it had not when it was sent. */
export function movedSecrets(sent: object, written: object | undefined): { moved_secrets?: string[] } {
  if (written === undefined) return {};
  const [before, after] = [sent, written].map((config) => variablesIn([JSON.stringify(config)]));
  const moved = [...after!.difference(before!)].toSorted();
  return moved.length === 0 ? {} : { moved_secrets: moved };
}
