import type { Era } from '../peer.ts';
import type { Scene } from '../scene.ts';

export interface Feature {
  name: string;
  /** Where only clients of one era have it. */
  only?: Era;
  run(scene: Scene): Promise<void>;
}
