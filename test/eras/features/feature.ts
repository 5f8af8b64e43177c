import type { Era } from '../peer.ts';
import type { Scene } from '../scene.ts';

export interface Feature {
  name: string;
  only?: Era;
  run(scene: Scene): Promise<void>;
}
