import type { Answers } from './peer.ts';

/** Declares a capability for each kind of server request that has an answer. */
export function capabilitiesFor({ elicit, sample, roots }: Answers) {
  return {
    ...(elicit && { elicitation: {} }),
    ...(sample && { sampling: {} }),
    ...(roots && { roots: {} }),
  };
}
