import type { Answers } from './peer.ts';

export function capabilitiesFor({ elicit, sample, roots }: Answers) {
  return {
    ...(elicit && { elicitation: {} }),
    ...(sample && { sampling: {} }),
    ...(roots && { roots: {} }),
  };
}
