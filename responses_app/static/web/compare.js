// The comparison: Esc leads back.

import { backLink } from "./back.js";
import { keyboard } from "./keys.js";

keyboard({ links: ".compare th a", back: backLink() });
