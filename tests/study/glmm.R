# The referee of study/mixed_model.py and study/contrasts.py: the paper's model in R (MASS, nlme, emmeans).
# Rscript glmm.R LOSSES CONTROL OUT [log]    reads a CSV of losses; writes OUT_{fit,means,control,pairs}.csv, at level 0.99.
suppressPackageStartupMessages({ library(nlme); library(MASS); library(emmeans) })
args <- commandArgs(trailingOnly = TRUE)
out <- args[3]
losses <- read.csv(args[1], stringsAsFactors = TRUE)
losses$encoder <- relevel(losses$encoder, ref = args[2])
losses$rotation <- factor(losses$rotation)
family <- if (length(args) > 3 && args[4] == "log") Gamma(link = "log") else Gamma(link = "identity")

# Without a starting range, nlme starts below the least distance, where the likelihood of places on a grid is flat.
fit <- glmmPQL(loss ~ encoder, random = ~ 1 | scene_type/scene,
               correlation = corSpher(value = 1, form = ~ x + y + z | scene_type/scene/encoder/rotation),
               family = family, data = losses, niter = 50, verbose = FALSE,
               control = lmeControl(maxIter = 200, msMaxIter = 200))
means <- emmeans(fit, ~ encoder, data = losses)
control <- contrast(means, "trt.vs.ctrl", ref = 1, adjust = "mvt")
pairs <- contrast(means, "pairwise", adjust = "tukey")

variances <- suppressWarnings(as.numeric(VarCorr(fit)[, "Variance"]))  # The headings of the two levels are NA.
variances <- variances[!is.na(variances)]
save <- function(table, name) {
  table <- as.data.frame(table)
  for (column in names(table)) if (is.numeric(table[[column]])) table[[column]] <- signif(table[[column]], 10)
  write.csv(table, paste0(out, "_", name, ".csv"), row.names = FALSE, quote = FALSE)
}
set.seed(1)  # emmeans integrates the multivariate t by quasi-Monte Carlo.
save(data.frame(scene_type = variances[1], scene = variances[2], residual = variances[3],
                range = coef(fit$modelStruct$corStruct, unconstrained = FALSE)), "fit")
save(confint(means, level = 0.95), "means")
save(summary(control, infer = TRUE, level = 0.99), "control")
save(summary(pairs, infer = TRUE, level = 0.99), "pairs")
