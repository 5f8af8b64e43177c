import { callFeatures } from './features/calls.ts';
import { cancellationFeatures } from './features/cancellation.ts';
import { changeFeatures } from './features/changes.ts';
import type { Feature } from './features/feature.ts';
import { logFeatures } from './features/logs.ts';
import { offerFeatures } from './features/offers.ts';
import { questionFeatures } from './features/questions.ts';

export const features: Feature[] = [
  ...offerFeatures,
  ...callFeatures,
  ...logFeatures,
  ...changeFeatures,
  ...questionFeatures,
  // Last, because a cancelled call may still run at a shared server, which makes its server requests ambiguous for a while.
  ...cancellationFeatures,
];
