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
  // A call that was cancelled may still be at work at a shared server, which for a while makes its questions ambiguous.
  ...cancellationFeatures,
];
