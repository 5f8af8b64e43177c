import type { Answers } from './peer.ts';

/** A client says that it can be asked for what it has answers to. */
export function capabilitiesFor({ elicit, sample, roots }: Answers) {
  return {
    ...(elicit && { elicitation: {} }),
    ...(sample && { sampling: {} }),
    ...(roots && { roots: {} }),
  };
}
