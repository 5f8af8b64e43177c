import { connectLegacy } from './legacy-client.ts';
import { connectModern } from './modern-client.ts';
import type { Answers, Era, Peer, Target } from './peer.ts';

export function connectPeer(era: Era, target: Target, answers: Answers = {}): Promise<Peer> {
  return era === 'legacy' ? connectLegacy(target, answers) : connectModern(target, answers);
}
