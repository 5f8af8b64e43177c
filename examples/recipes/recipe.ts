import { z } from 'zod';

/** What a cook has to know. */
export const recipe = z.object({
  title: z.string().min(1).max(200).describe('What the dish is called'),
  servings: z.number().int().min(1).max(100).describe('For how many people it is'),
  ingredients: z.array(z.string()).min(1).describe('One with its amount each, like "200 g flour"'),
  steps: z.array(z.string()).min(1).describe('What is done, in its order'),
});

export const recipeChanges = recipe.partial();

export type Recipe = z.infer<typeof recipe>;
export type RecipeChanges = z.infer<typeof recipeChanges>;
