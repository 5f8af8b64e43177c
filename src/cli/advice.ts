import { givenKey } from './credential.ts';
import { KEY_VARIABLE } from './defaults.ts';

/** What to do about a refusal, on its own line, as far as the message itself does not say it. */
export function adviceFor(code: unknown, details: Record<string, unknown>): string {
  const advice = textFor(code, details);
  return advice === undefined ? '' : `\n       ${advice}`;
}

function textFor(code: unknown, { rule }: Record<string, unknown>): string | undefined {
  if (code === 'unauthorized') {
    return givenKey() === undefined
      ? `Commands send the key in the environment variable ${KEY_VARIABLE}.`
      : `The command sent the key in ${KEY_VARIABLE}: set it to a valid key, or unset it.`;
  }
  if (code === 'forbidden' && typeof rule === 'string') {
    return `Rules are shown by: switchboard rule ls. An owner can remove this one with: switchboard rule rm ${rule}`;
  }
  if (code === 'too_many_requests') return 'Limits are shown by: switchboard limit ls';
  return undefined;
}
